"""The statistics of a report: scores over seeds, alone and compared, without tables or words."""
