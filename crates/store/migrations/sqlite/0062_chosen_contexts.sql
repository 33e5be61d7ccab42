-- The inbound message that the hub chose for a reply or reaction that named none. A repeat of the call answers the same one.
ALTER TABLE notify_requests ADD COLUMN call_key BLOB;     -- hash of the caller and its idempotency key
ALTER TABLE notify_requests ADD COLUMN context_json TEXT; -- the request_context of the message
CREATE INDEX notify_requests_by_call ON notify_requests (call_key, created_at) WHERE call_key IS NOT NULL;
