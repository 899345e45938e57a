"""A page of Streamlit."""

import streamlit

streamlit.write(sum(range(100)))
