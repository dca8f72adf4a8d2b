//===- stagec.cpp - the compiler ------------------------------------------===//
#include "stage/Driver/Driver.h"

int main(int argc, char **argv) { return stage::driver::stagecMain(argc, argv); }
