"""From a sweep's records to a table: layout, comparisons, audit and notes, each of which reads only what lies below."""
