PYTHONPATH=. DJANGO_SETTINGS_MODULE=settings venv/bin/python -B -W ignore -m django migrate --skip-checks -v0
