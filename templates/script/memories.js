// Memories: what the assistant keeps in mind.
