"""The pages in a browser: runs as they happen, and all runs of a folder. They are made from run folders alone.

`app.py` puts the views of `views` together, `security.py` says what is refused, `serving.py` is the server.
"""
