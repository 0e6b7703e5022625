-- The trigrams of a text: each three characters that follow each other. A text of fewer characters has none (NULL). Its cost keeps the planner from
-- calling it for each row where the index of the trigrams serves.
CREATE OR REPLACE FUNCTION text_trigrams(text) RETURNS text[] LANGUAGE sql IMMUTABLE PARALLEL SAFE COST 10000 AS $$
    SELECT array_agg(DISTINCT one || two || three) FROM (
        SELECT c AS one, lead(c) OVER following AS two, lead(c, 2) OVER following AS three
        FROM unnest(string_to_array($1, NULL)) WITH ORDINALITY AS characters (c, n) WINDOW following AS (ORDER BY n)
    ) AS trigrams WHERE three IS NOT NULL
$$;
-- A copy of text with its index by trigrams, with the name that the index has on SQLite. It is apart from merge_requests, because a write of a row there would
-- compute the trigrams again, although the text is the same.
CREATE TABLE merge_request_texts (
    rowid BIGINT NOT NULL PRIMARY KEY REFERENCES merge_requests (id) ON DELETE CASCADE,
    text  TEXT NOT NULL
);
INSERT INTO merge_request_texts SELECT id, text FROM merge_requests;
CREATE INDEX merge_request_texts_with_trigrams ON merge_request_texts USING gin (text_trigrams(text));
CREATE FUNCTION merge_request_text_is_written() RETURNS TRIGGER LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO merge_request_texts VALUES (NEW.id, NEW.text) ON CONFLICT (rowid) DO UPDATE SET text = excluded.text;
    RETURN NULL;
END $$;
CREATE TRIGGER merge_request_text_is_added AFTER INSERT ON merge_requests FOR EACH ROW EXECUTE FUNCTION merge_request_text_is_written();
CREATE TRIGGER merge_request_text_changes AFTER UPDATE OF text ON merge_requests FOR EACH ROW WHEN (OLD.text <> NEW.text)
    EXECUTE FUNCTION merge_request_text_is_written();
