"""What a person sees: the status page."""
