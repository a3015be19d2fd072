SELECT "L"."Price", "L" AS "Whole" FROM app."Order Lines" AS "L"
