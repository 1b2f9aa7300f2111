"""How findings look: `text` for people, `json` for tools. Judges nothing."""
