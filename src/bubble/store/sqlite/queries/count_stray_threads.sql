SELECT count(*) FROM (
    SELECT DISTINCT thread_key FROM events
    EXCEPT SELECT thread_key FROM threads
    EXCEPT SELECT thread_key FROM doomed_threads
)
