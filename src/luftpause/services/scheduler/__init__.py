"""The shell around core/scheduling."""
