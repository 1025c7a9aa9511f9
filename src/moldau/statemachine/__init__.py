"""State machines over a log: decisions, effects, timers and the runtime that carries them out."""
