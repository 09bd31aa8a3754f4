"""The arithmetic of a report: what scores over seeds say, alone and side by side; nothing of tables or words."""
