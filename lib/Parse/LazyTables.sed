# sed -z: ANTLR 4.7 builds the tables of a grammar when the program starts. Here the first lexer or parser builds them,
# because a run that finds all its trees in the cache needs no tables.
s/\n  (_interpreter = new .*)\n[A-Za-z]+::Initializer [A-Za-z]+::_init;\n/\n  static const Initializer tables;\n  \1/
