/* What the C++ library has only since gcc 9, instantiated in the observer of
 * torch's operators itself, so that it also loads beside the one of gcc 8,
 * which is that of manylinux_2_28. Included ahead of the observer's source by
 * adapters.py alone. */
#include <sstream>

template std::ostringstream::basic_ostringstream();
