import sys

import django
from django.conf import settings

from dp import DATABASE, HOST, NAME, PASSWORD, PORT, USER, epsilon, sent

BINDS = "server_side_binding" in sys.argv

settings.configure(
    USE_TZ=True,
    TIME_ZONE="Europe/Berlin",
    DEFAULT_AUTO_FIELD="django.db.models.AutoField",
    DATABASES={
        "default": {
            "ENGINE": "django.db.backends.postgresql", "HOST": HOST, "PORT": PORT, "NAME": DATABASE, "USER": USER, "PASSWORD": PASSWORD,
            "OPTIONS": {"application_name": NAME, "server_side_binding": BINDS, "pool": {"min_size": 1, "max_size": 2, "timeout": 600}},
        },
    },
)
django.setup()

from django.db import DatabaseError, connection, models, transaction  # noqa: E402


class Person(models.Model):
    grp = models.IntegerField()

    class Meta:
        app_label = "clients"
        db_table = "people"
        managed = False


class DPCount(models.Aggregate):
    function = "COUNT"
    template = "dp_count(%(function)s(%(distinct)s%(expressions)s), %(epsilon)s)"
    output_field = models.FloatField()

    def __init__(self, expression, epsilon, **extra):
        super().__init__(expression, epsilon=epsilon, **extra)


class DPNoise(models.Func):
    function = "dp_count"
    output_field = models.FloatField()


def say(e, *params, **options):
    sent(e, *(params if BINDS else ()), **options)


def noised(e):
    return DPNoise(models.Count("id"), models.Value(e))


def orm():
    e = epsilon()
    Person.objects.aggregate(n=DPCount("id", e))
    sent(e)
    e = epsilon()
    Person.objects.aggregate(n=noised(e))
    say(e, e)
    for group in (0, 1, 2):
        e = epsilon()
        Person.objects.filter(grp=group).aggregate(n=noised(e))
        say(e, e, group)
    e = epsilon()
    list(Person.objects.values("grp").annotate(n=noised(e)).order_by("grp")[:2])
    say(e, e)
    e = epsilon()
    list(Person.objects.filter(grp__in=[1, 2]).values("grp").annotate(n=noised(e)).iterator(chunk_size=1))  # a cursor of the server
    say(e, e, 1, 2)
    Person.objects.filter(grp=1).count()
    Person.objects.get(id=1)


def sql():
    with connection.cursor() as k:
        e = epsilon()
        k.execute("SELECT dp_count(count(*), %s) FROM people WHERE grp = %s", [e, 1])
        say(e, e, 1)
        e = epsilon()
        k.execute(f"SELECT dp_count(count(*), {e}) FROM people")
        sent(e)
        e = epsilon()
        k.execute("SELECT set_config('dp.epsilon', %s, false)", [str(e)])
        k.execute("SELECT noisy(count(*), 4) FROM people")
        sent(e, source="setting")
        k.execute("SELECT noisy(count(*), 4) FROM people WHERE grp = %s", [1])
        say(e, 1, source="setting")
        k.execute("RESET dp.epsilon")
    e = epsilon()
    list(Person.objects.raw("SELECT 1 AS id, dp_count(count(*), %s) AS n FROM people", [e]))
    say(e, e)


def transactions():
    with transaction.atomic():
        e = epsilon()
        Person.objects.aggregate(n=noised(e))
        say(e, e)
        try:
            with transaction.atomic(), connection.cursor() as k:
                e = epsilon()
                k.execute("SELECT dp_count(count(*), %s) / (count(*) - 50) FROM people", [e])
        except DatabaseError:
            say(e, e)
        with connection.cursor() as k:
            e = epsilon()
            k.execute("SET LOCAL dp.epsilon = %s" if not BINDS else f"SET LOCAL dp.epsilon = '{e}'", [str(e)] if not BINDS else None)
            k.execute("SELECT noisy(count(*), 4) FROM people")
            sent(e, source="setting")
    e = epsilon()
    Person.objects.aggregate(n=noised(e))
    say(e, e)


for step in (orm, sql, transactions):
    step()
    connection.close()  # back to the pool, as at the end of a request
connection.close_pool()
