"""decide → records → append → replay → reply: the one way in which replicated state changes."""
