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

/** The texts of a part of the page, by view and word. The linker puts them in, and the languages' names by their codes (dashboard.py). */
declare const PAGE_TEXTS: Record<string, Record<string, string>>;
declare const PAGE_LANGUAGES: Record<string, string>;

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

/** The list that a photo is opened from, as far as the viewer goes through it. */
interface Sequence {
  /** The id of the photo `delta` places on, also where the list has not loaded it yet; null beyond its ends. */
  neighbour(id: number, delta: number): Promise<number | null>;
  /** Its place, counted from 1. */
  place(id: number): Promise<{ at: number; total: number } | null>;
  summary(id: number): PhotoItem | undefined;
}

/** A part of a picture, in fractions of its width and height. */
interface Box {
  left: number;
  top: number;
  width: number;
  height: number;
}

/** What a search has found on a photo, or what its records rest on. */
interface Found {
  matched: string[];
  boxes: Box[];
  /** Lines that are marked like boxes, by their places in its text. */
  lines?: number[];
}

// The API's answers, as far as the page reads them. Names and fields are those of shapes.py; a test compares the two.

type Status = "pending" | "processing" | "done" | "error";

interface PhotoItem {
  id: number;
  filename: string;
  width: number;
  height: number;
  title: string;
  summary: string;
  app_name: string;
  analysis_status: Status;
  original_timestamp: string;
  kept: boolean;
  tags: string[];
  sensitive: string[];
  deleted_at: string | null;
  stack?: Stack | null;
}

interface Amount {
  value: string;
  currency: string;
}

interface RecordField {
  name: string;
  value: string | Amount | Record<string, string>[];
  text: string;
  lines: number[];
}

interface RecordFields {
  id: number;
  type: string;
  line: string;
  fields: RecordField[];
  source: string;
  confidence: number;
}

interface Stack {
  count: number;
  photo_ids: number[];
  best: number;
}

interface TagCount {
  tag: string;
  photos: number;
}

interface BatchChanged {
  done: number;
  missing: number[];
}

interface ExpiringPhotos {
  total: number;
  from: string | null;
  until: string | null;
  items: PhotoItem[];
}

interface AgendaFields {
  id: number;
  photo_id: number;
  photo_ids: number[];
  kind: string;
  title: string;
  starts_at: string;
  ends_at: string | null;
  all_day: boolean;
  quote: string;
  line: number;
  dismissed: boolean;
  sensitive: string[];
}

interface ThreadMoment {
  name: string;
  at: string;
}

/** An item in the list of the agenda, with what its thread has on that day. */
interface ListedAgendaFields extends AgendaFields {
  thread: { thread_id: number; title: string; times: ThreadMoment[] } | null;
}

interface ThreadFields {
  id: number;
  title: string;
  type: string;
  state: string;
  is_open: boolean;
  said_on: number;
  line: number | null;
  count: number;
  first_at: string;
  last_at: string;
  photo_ids: number[];
  next: ThreadMoment | null;
  sensitive: string[];
}

interface ThreadPage {
  total: number;
  page: number;
  page_size: number;
  threads: ThreadFields[];
}

interface Agenda {
  total: number;
  limit: number;
  items: ListedAgendaFields[];
}

interface ListedRecord extends RecordFields {
  photo_id: number;
  day: string;
  sensitive: string[];
  doubtful: boolean;
}

interface RecordSum {
  currency: string;
  value: string;
  count: number;
}

interface RecordPage {
  total: number;
  page: number;
  page_size: number;
  records: ListedRecord[];
  sums: RecordSum[];
}

interface PhotoHit extends PhotoItem {
  score: number;
  snippet: string;
  matched: string[];
  boxes: Box[];
}

interface SavedSearch {
  id: number;
  name: string;
  query: string;
  new: number;
}

interface PhotoHits {
  total: number;
  items: PhotoHit[];
  corrected: Correction[];
  nearest: NearWord[];
}

interface Correction {
  word: string;
  matched: string[];
}

interface NearWord {
  word: string;
  photos: number;
}

interface AppCount {
  app_name: string;
  photos: number;
}

interface MonthCount {
  month: string;
  photos: number;
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
  text: string;
  title: string;
  summary: string;
  note: string;
  kept: boolean;
  tags: string[];
  sensitive: string[];
  own: string[];
  records: RecordFields[];
  stack: Stack | null;
  thread_id: number | null;
  analysis: AnalysisDetail;
}

interface LineFields {
  text: string;
  left: number;
  top: number;
  width: number;
  height: number;
  status_bar: boolean;
}

interface PhotoLines {
  width: number;
  height: number;
  lines: LineFields[];
}

interface AnalysisDetail {
  status: Status;
  title: string;
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
  searchable: number;
  seconds_left: number | null;
  category_distribution: Record<string, number>;
  intent_distribution: Record<string, number>;
  sensitive_photos: number;
  sensitive_kinds: Record<string, number>;
}

interface DynamicItem {
  id: number;
  title: string;
  summary: string;
  category: string;
  is_read: boolean;
  is_pinned: boolean;
  created_at: string;
  sensitive: string[];
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
  sensitive: string[];
}

interface MessageFields {
  id: number;
  role: "user" | "assistant" | "tool";
  content: string | null;
  tool_calls: string | null;
  tool_name: string | null;
  has_attachment: boolean;
  citations: Citation[];
  created_at: string;
}

interface Citation {
  photo_id: number;
  text: string;
  lines: number[];
  boxes: Box[];
}

interface PendingCall {
  id: string;
  tool: string;
  server: string;
  server_id: string | null;
  arguments: string;
  sensitive: string[];
}

interface ConversationItem {
  id: string;
  title: string;
  last_message: string;
  sensitive: string[];
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
  trusted: boolean;
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
  last_sync_time: string;
  total_synced: number;
}

interface TokenFields {
  id: number;
  name: string;
  scope: string;
  device_id: string;
  created_at: string;
  last_used_at: string | null;
}

interface PairingFields {
  code: string;
  qr: string;
  expires_at: string;
}

interface RecipeFields {
  name: string;
  filename: string;
  content: string;
  steps: string[];
  actions: { title: string; values: { name: string; value: string; typed: boolean }[] }[];
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

interface NetworkFields {
  listen: "off" | "minutes" | "always" | "fixed";
  until: string | null;
}

interface Addresses {
  addresses: string[];
  loopback_only: boolean;
  certificate: { ca_fingerprint: string } | null;
  network: NetworkFields | null;
}

interface RetentionFields {
  retention_days: number;
  chosen: boolean;
}

interface RetentionPreview {
  photos: number;
  conversations: number;
  dynamics: number;
}
