/* A small tree for the tests of the index: this file is what makes it one. */
