"""torch.profiler's API on recordings of vestige, and the adapter that records torch's operators."""
