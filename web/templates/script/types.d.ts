// Types for tsc, which checks the scripts; known in all of them without an import. Not served.

type TagOf<Tag extends string> = Tag extends `${infer Name}.${string}` ? Name : Tag;
/** The element that `h("input.switch")` makes: an HTMLInputElement. */
type Made<Tag extends string> = TagOf<Tag> extends keyof HTMLElementTagNameMap ? HTMLElementTagNameMap[TagOf<Tag>] : HTMLElement;
type Child = Node | string | number | boolean | null | undefined | Child[];
type Listeners = Record<string, (event: any) => unknown>;

interface Props {
  class?: string;
  text?: string;
  label?: string;
  on?: Listeners;
  dataset?: Record<string, string | number>;
  style?: Record<string, string>;
  [attribute: string]: any;
}

/** A function that ends a view or a section of the settings. */
type Ending = () => unknown;

interface Address {
  name: string;
  id: string | null;
  query: URLSearchParams;
}

/** An item of the JSON list `entities`. A model wrote it, so no field is certain. */
interface Entity {
  type: unknown;
  value: unknown;
}

// The API's answers, as far as the page reads them. Names and fields are those of shapes.py; a test compares the two.

type Status = "pending" | "processing" | "done" | "error";

interface PhotoItem {
  id: number;
  filename: string;
  summary: string;
  analysis_status: Status;
  original_timestamp: string;
}

interface PhotoHit extends PhotoItem {
  snippet: string;
}

interface PhotoDetail {
  id: number;
  filename: string;
  width: number;
  height: number;
  file_size: number;
  device_id: string;
  device_name: string;
  original_timestamp: string;
  created_at: string;
  analysis: AnalysisDetail;
}

interface AnalysisDetail {
  status: Status;
  summary: string;
  app_name: string;
  content_category: string;
  intent: string;
  confidence: number;
  entities: string;
  error_message: string | null;
  llm_response: string;
}

interface Statistics {
  total_photos: number;
  pending: number;
  processing: number;
  done: number;
  errors: number;
  category_distribution: Record<string, number>;
  intent_distribution: Record<string, number>;
}

interface DynamicItem {
  id: number;
  title: string;
  summary: string;
  category: string;
  is_read: boolean;
  is_pinned: boolean;
  created_at: string;
}

interface DynamicDetail extends DynamicItem {
  content: string;
  confidence: number;
  source_photo_ids: string;
  source_conversation_ids: string;
}

interface DynamicStatistics {
  total_unread: number;
  by_category: Record<string, number>;
}

interface MemoryFields {
  id: number;
  content: string;
  category: string;
  source_type: string;
  importance: number;
  access_count: number;
  created_at: string;
  expires_at: string | null;
}

interface MessageFields {
  id: number;
  role: "user" | "assistant" | "tool";
  content: string | null;
  tool_calls: string | null;
  tool_name: string | null;
  created_at: string;
}

interface ConversationItem {
  id: string;
  title: string;
  last_message: string;
  updated_at: string;
}

interface SkillDetail {
  id: string;
  name: string;
  icon: string;
  description: string;
  system_prompt: string;
}

interface ServerFields {
  id: string;
  name: string;
  url: string;
  description: string;
}

interface DeviceFields {
  device_id: string;
  device_name: string;
  device_model: string;
  app_version: string;
  platform: string;
  last_seen: string;
}

interface SyncedDevice {
  device_id: string;
  device_name: string;
}

interface PresetFields {
  base_url: string;
  model: string;
}

interface ConfigurationFields {
  provider: string;
  base_url: string;
  model: string;
  temperature: number;
  api_key_set: boolean;
  max_context_tokens: number;
}

interface UsageRow {
  day: string;
  purpose: string;
  model: string;
  calls: number;
  prompt_tokens: number;
  completion_tokens: number;
  total_tokens: number;
}

interface UsageReport {
  daily_token_limit: number;
  tokens_today: number;
  days: UsageRow[];
}

interface KeyStatus {
  encrypted: boolean;
  generation: number;
  created_at: string | null;
  rotation_days: number;
  rotation_due_at: string | null;
  files: SealedFiles[];
}

interface SealedFiles {
  generation: number;
  count: number;
}
