#ifndef VST_TESTS_SLOT_LIBRARY_H
#define VST_TESTS_SLOT_LIBRARY_H

int slot_value(int of); /* returns the argument plus one */
int slot_ask(int of);   /* returns ten times the argument */

#endif
