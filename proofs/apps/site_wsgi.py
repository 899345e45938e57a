"""A Flask application: two pages, one of which says a word that the client changes, to see the server reload."""

from flask import Flask

app = Flask(__name__)
WORD = "first"


@app.get("/total/<int:count>")
def total(count):
    return {"total": sum(number * number for number in range(count))}


@app.get("/word")
def word():
    return WORD
