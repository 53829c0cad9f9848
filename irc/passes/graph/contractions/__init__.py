"""The pass `choose-contractions`, and what calls are as products of irc's own."""
