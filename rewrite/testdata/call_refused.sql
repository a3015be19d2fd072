CALL p()
