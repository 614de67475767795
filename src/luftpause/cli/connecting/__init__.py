"""How clients are pointed at the doors: what each needs to be told, and how that gets into its own files."""
