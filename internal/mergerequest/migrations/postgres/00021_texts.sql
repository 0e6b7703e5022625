-- The trigrams of a text: each three characters that follow each other. A text of fewer characters has none (NULL). Its cost keeps the planner from
-- calling it for each row where the index of the trigrams serves.
CREATE OR REPLACE FUNCTION text_trigrams(text) RETURNS text[] LANGUAGE sql IMMUTABLE PARALLEL SAFE COST 10000 AS $$
    SELECT array_agg(DISTINCT one || two || three) FROM (
        SELECT c AS one, lead(c) OVER following AS two, lead(c, 2) OVER following AS three
        FROM unnest(string_to_array($1, NULL)) WITH ORDINALITY AS characters (c, n) WINDOW following AS (ORDER BY n)
    ) AS trigrams WHERE three IS NOT NULL
$$;
-- The index of text by trigrams, with the name that it has on SQLite.
CREATE INDEX merge_requests_with_trigrams ON merge_requests USING gin (text_trigrams(text));
CREATE VIEW merge_request_texts AS SELECT id AS rowid, text_trigrams(text) AS trigrams FROM merge_requests;
