"""What services need from the world, as Protocols. Adapters stand behind them."""
