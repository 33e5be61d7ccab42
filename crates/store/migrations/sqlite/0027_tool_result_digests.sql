-- A digest of the tool result that a call id came with: a call id that returns with another one was used twice. The result
-- itself is not stored.
ALTER TABLE injections ADD COLUMN tool_result_digest BLOB;
