/* The part of events.c that talks: streams, datagrams, netlink, raw packets. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/vm_sockets.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

void sockets(void);

static void *echo(void *data)
{
	int server = *(int *)data, talk = accept(server, NULL, NULL);
	char text[8192];
	ssize_t got;

	while (talk >= 0 && (got = read(talk, text, sizeof(text))) > 0)
		if (write(talk, text, got) < 0)
			break;
	close(talk);
	return NULL;
}

static void talk(int family, int protocol, const struct sockaddr *address, socklen_t size)
{
	int server = socket(family, SOCK_STREAM, protocol), client = socket(family, SOCK_STREAM, protocol), one = 1;
	char text[8192] = "hello";
	pthread_t thread;

	setsockopt(server, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	setsockopt(client, SOL_TCP, TCP_CONGESTION, "cubic", 5);
	if (bind(server, address, size) < 0 || listen(server, 4) < 0)
		return;
	pthread_create(&thread, NULL, echo, &server);
	if (connect(client, address, size) == 0) {
		for (int i = 0; i < 20; i++)
			if (send(client, text, sizeof(text), MSG_NOSIGNAL) < 0 || recv(client, text, sizeof(text), 0) < 0)
				break;
		shutdown(client, SHUT_RDWR);
	}
	close(client);
	shutdown(server, SHUT_RDWR);
	pthread_join(thread, NULL);
	close(server);
}

static void datagrams(int family, const struct sockaddr *address, socklen_t size)
{
	int server = socket(family, SOCK_DGRAM, 0), client = socket(family, SOCK_DGRAM, 0), small = 2048;
	char text[600] = "hello";

	setsockopt(server, SOL_SOCKET, SO_RCVBUF, &small, sizeof(small));
	if (bind(server, address, size) == 0) {
		for (int i = 0; i < 40; i++)
			sendto(client, text, sizeof(text), MSG_DONTWAIT, address, size);
		while (recv(server, text, sizeof(text), MSG_DONTWAIT) > 0)
			;
	}
	close(server);
	sendto(client, text, sizeof(text), MSG_DONTWAIT, address, size);
	close(client);
}

void sockets(void)
{
	struct sockaddr_in four = { AF_INET, htons(7777), { htonl(INADDR_LOOPBACK) }, { 0 } };
	struct sockaddr_in6 six = { .sin6_family = AF_INET6, .sin6_port = htons(7778), .sin6_addr = IN6ADDR_LOOPBACK_INIT };
	struct sockaddr_un local = { AF_UNIX, "/tmp/socket" };
	struct sockaddr_vm virtual = { .svm_family = AF_VSOCK, .svm_port = 99, .svm_cid = VMADDR_CID_LOCAL };
	struct { struct nlmsghdr head; struct ifinfomsg body; } ask = {
		{ sizeof(ask), RTM_GETLINK, NLM_F_REQUEST | NLM_F_DUMP, 1, 0 }, { .ifi_family = AF_UNSPEC } };
	char text[65536];

	unlink("/tmp/socket");
	talk(AF_INET, 0, (void *)&four, sizeof(four));
	talk(AF_INET6, 0, (void *)&six, sizeof(six));
	talk(AF_UNIX, 0, (void *)&local, sizeof(local));
	talk(AF_INET, IPPROTO_SCTP, (void *)&four, sizeof(four));
	talk(AF_INET, 262 /* MPTCP */, (void *)&four, sizeof(four));
	talk(AF_INET6, 262, (void *)&six, sizeof(six));
	talk(AF_VSOCK, 0, (void *)&virtual, sizeof(virtual));
	datagrams(AF_INET, (void *)&four, sizeof(four));
	datagrams(AF_INET6, (void *)&six, sizeof(six));
	four.sin_port = htons(9);
	int client = socket(AF_INET, SOCK_STREAM, 0);
	if (connect(client, (void *)&four, sizeof(four)) == 0)
		puts("somebody listens on port 9");
	close(client);
	int link = socket(AF_NETLINK, SOCK_RAW, NETLINK_ROUTE);
	send(link, &ask, sizeof(ask), 0);
	recv(link, text, sizeof(text), 0);
	int kernel = socket(AF_NETLINK, SOCK_RAW, NETLINK_ROUTE);
	ask.head.nlmsg_type = 200;
	ask.head.nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK;
	send(kernel, &ask, sizeof(ask), 0);
	recv(kernel, text, sizeof(text), 0);
	int raw = socket(AF_INET, SOCK_RAW, IPPROTO_ICMP);
	four.sin_addr.s_addr = htonl(0x7f000002);
	sendto(raw, "\x08\0\xf7\xff\0\0\0\0", 8, 0, (void *)&four, sizeof(four));
	four.sin_addr.s_addr = htonl(0x0a090807);
	sendto(raw, "\x08\0\xf7\xff\0\0\0\0", 8, 0, (void *)&four, sizeof(four));
}
