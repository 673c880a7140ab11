// The chat: conversations, messages, tool calls, attachments.
