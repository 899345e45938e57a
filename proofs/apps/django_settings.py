"""Settings of a small Django project: its pages are in django_pages.py, its tests in django_tests.py."""

DEBUG = True
SECRET_KEY = "not secret"
ROOT_URLCONF = "django_pages"
ALLOWED_HOSTS = ["127.0.0.1", "testserver"]
DATABASES = {"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}}
INSTALLED_APPS = ["django.contrib.contenttypes", "django.contrib.auth"]
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
