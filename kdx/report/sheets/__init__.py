"""What a report shows as sheets: scores, what stands below them, and the verdicts on claims."""
