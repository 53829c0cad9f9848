"""The pass `functionalize`: storages, views of them, and how views are undone."""
