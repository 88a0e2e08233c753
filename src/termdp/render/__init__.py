"""From states and observations to drawings, and from drawings to pixels."""
