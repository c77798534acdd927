-- The JSON Schema that the data of an answer is held to, as text; NULL without one.
ALTER TABLE human_requests ADD COLUMN data_schema_json TEXT;
