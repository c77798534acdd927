-- All tokens of a server are one principal: what belongs to a caller outlives the rotation of its token. Scopes and
-- answers of people began with the fingerprint of the token that was in use.

UPDATE OR REPLACE idempotency SET scope = 'token' || substr(scope, 23)
WHERE scope GLOB 'token_????????????????*' AND substr(scope, 23, 1) = ' ';

UPDATE human_requests SET response_json = json_set(response_json, '$.principal', 'token')
WHERE response_json IS NOT NULL AND json_extract(response_json, '$.principal') GLOB 'token_????????????????';
