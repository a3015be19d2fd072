SELECT app."Order Lines"."Price", app."Order Lines".* FROM app."Order Lines"
