"""Quality control: reads recorded episodes, never a simulator, and says which are worth training on and why."""
