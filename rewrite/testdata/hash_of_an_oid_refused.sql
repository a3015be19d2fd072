SELECT hashenum(kind) FROM users
