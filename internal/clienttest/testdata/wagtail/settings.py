import os

SECRET_KEY="x"; USE_TZ=True; DEFAULT_AUTO_FIELD="django.db.models.AutoField"; WAGTAIL_SITE_NAME="x"; WAGTAILADMIN_BASE_URL="http://localhost"
INSTALLED_APPS=["wagtail.contrib.forms","wagtail.contrib.redirects","wagtail.embeds","wagtail.sites","wagtail.users","wagtail.snippets","wagtail.documents","wagtail.images","wagtail.search","wagtail.admin","wagtail","modelcluster","taggit","django.contrib.admin","django.contrib.auth","django.contrib.contenttypes","django.contrib.sessions","django.contrib.messages"]
DATABASES = {"default": {"ENGINE": "django.db.backends.postgresql", "NAME": os.environ["PGDATABASE"], "USER": os.environ["PGUSER"], "PASSWORD": os.environ["PGPASSWORD"], "HOST": os.environ["PGHOST"], "PORT": os.environ["PGPORT"]}}
STATIC_URL="/s/"
