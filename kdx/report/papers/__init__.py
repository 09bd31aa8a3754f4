"""What papers published and claim, beside the runs at hand."""
