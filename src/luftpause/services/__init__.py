"""The doing side: mailbox and perform. Services know ports and cores, never each other."""
