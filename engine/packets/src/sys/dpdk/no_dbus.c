/*
 * libpcap can also listen to the messages of D-Bus, by a file of its archive that needs libdbus and libsystemd. Nothing here
 * captures those, so that these two stand in for it: "no such devices".
 */
#include <stddef.h>

struct pcap *dbus_create(const char *device, char *error, int *is_ours);
int dbus_findalldevs(void *devices, char *error);

struct pcap *dbus_create(const char *device, char *error, int *is_ours)
{
	(void)device, (void)error;
	*is_ours = 0;
	return NULL;
}

int dbus_findalldevs(void *devices, char *error)
{
	(void)devices, (void)error;
	return 0;
}
