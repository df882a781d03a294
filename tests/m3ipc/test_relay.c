/* relay was published without a body, and has none here. */
#include "m3test.h"

int main(void)
{
    message m = text_message(1, 1);
    begin();
    SHOW(mnx_bind(0, 1));
    SHOW(mnx_relay(2, &m));
    return 0;
}
