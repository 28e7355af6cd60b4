-- The format of a user's own model server.
ALTER TABLE providers ADD COLUMN api TEXT NOT NULL DEFAULT 'chat'
    CONSTRAINT provider_api_known CHECK (api IN ('chat', 'responses', 'messages'));
