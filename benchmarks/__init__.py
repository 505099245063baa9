"""What Stoker costs, measured side by side and printed as ratios."""
