#ifndef VST_TESTS_SLOT_LIBRARY_H
#define VST_TESTS_SLOT_LIBRARY_H

int slot_value(int of); /* one more */
int slot_ask(int of);   /* ten times that */

#endif
