"""Who is calling, and what they may do: identities, drivers, roles, policy."""
