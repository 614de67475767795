"""Words shared by all cores. See docs/GLOSSARY.md for what each one means."""
