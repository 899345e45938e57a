/* Functions that the C++ library has only since gcc 9, instantiated in the
 * observer of torch's operators itself, so that the observer also loads with
 * the C++ library of gcc 8, as in manylinux_2_28. Only adapters.py includes
 * this file, ahead of the observer's source. */
#include <sstream>

template std::ostringstream::basic_ostringstream();
