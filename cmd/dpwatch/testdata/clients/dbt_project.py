"""Runs a dbt project: models of each kind, tests, a hook and an operation. Its statements have three-part names."""

import contextlib
import io
import pathlib

from dbt.cli.main import dbtRunner

from dp import DATABASE, HOST, NAME, PASSWORD, PORT, USER, epsilon, sent



def main():
    made, shown, called, hooked, grew, again = (epsilon() for _ in range(6))
    people = "{{ source('raw', 'people') }}"
    files = {
        "dbt_project.yml": "name: clients\nversion: 1.0.0\nprofile: clients\nmodels: {clients: {+materialized: table}}\nflags: {send_anonymous_usage_stats: false}\n",
        "profiles.yml": f"""
clients:
  target: test
  outputs:
    test:
      {{type: postgres, host: {HOST}, port: {PORT}, user: {USER}, password: '{PASSWORD}', dbname: {DATABASE}, schema: analytics, threads: 2, sslmode: disable, connect_timeout: 600,
      application_name: {NAME}}}
""",
        "models/schema.yml": """
sources: [{name: raw, schema: public, tables: [{name: people}]}]
models: [{name: made, columns: [{name: n, data_tests: [not_null, unique]}]}]
""",
        "models/made.sql": f"select dp_count(count(*), {made}) as n from {people}",
        "models/filtered.sql": f"{{{{ config(materialized='ephemeral') }}}} select * from {people} where grp < 2",
        "models/grew.sql": f"""{{{{ config(materialized='incremental', post_hook="select dp_count(count(*), {hooked}) from {people}") }}}}
select grp, dp_count(count(*), {{{{ {again} if is_incremental() else {grew} }}}}) as n from {{{{ ref('filtered') }}}} group by grp""",
        "models/seen.sql": "{{ config(materialized='view') }} select n from {{ ref('made') }}",
        "macros/ask.sql": f"{{% macro ask() %}}{{% do run_query('select dp_count(count(*), {called}) from public.people') %}}{{% endmacro %}}",
    }
    for name, text in files.items():
        pathlib.Path(name).parent.mkdir(exist_ok=True)
        pathlib.Path(name).write_text(text)
    for command in (
        ["build"],
        ["run", "--select", "grew"],
        ["show", "--inline", f"select dp_count(count(*), {shown}) as n from {people} where grp = 1"],
        ["run-operation", "ask"],
    ):
        output = io.StringIO()
        with contextlib.redirect_stdout(output):
            result = dbtRunner().invoke([*command, "--profiles-dir", ".", "--project-dir", "."])
        if not result.success:
            raise SystemExit(f"dbt {command}: {result.exception}\n{output.getvalue()}")
    for e in (made, grew, again, shown, called):
        sent(e)
    sent(hooked, times=2)


if __name__ == "__main__":  # dbt starts other processes, which import this file
    main()
