"""Which addresses callers may reach, in every form that an address has."""

from ipaddress import ip_address

import pytest

from svc.outbound.addresses import Origin, checked_url, public_address, public_or_private_address
from svc.outbound.errors import InvalidURL
from tests.support.cases import each

PUBLIC = [
    "8.8.8.8",
    "1.1.1.1",
    "93.184.216.34",
    "172.15.255.255",
    "172.32.0.1",
    "100.63.255.255",
    "100.128.0.1",
    "223.255.255.255",
]
PUBLIC += ["2606:4700::1111", "2a00:1450:4001::8a", "2001:4860:4860::8888", "2001:200::1", "2620:fe::fe"]

PRIVATE = [
    "10.0.0.1",
    "172.16.0.1",
    "172.31.255.255",
    "192.168.1.1",
    "127.0.0.1",
    "127.255.255.254",
    "::1",
    "fc00::1",
    "fdff::1",
]

NEVER = {
    "unspecified": ["0.0.0.0", "0.1.2.3", "::"],
    "link-local": ["169.254.0.1", "169.254.169.254", "fe80::1", "fe80::a9fe:a9fe", "fe80::1%eth0", "febf::1"],
    "metadata": ["168.63.129.16", "100.100.100.200", "192.0.0.192", "fd00:ec2::254", "fd20:ce::254", "fd00:42::42"],
    "site-local": ["fec0::1", "feff::1"],
    "carrier-grade NAT": ["100.64.0.1", "100.127.255.255"],
    "IETF protocols": ["192.0.0.1", "192.0.0.170", "192.88.99.1", "2001:1::1", "2001:10::1", "2001:20::1"],
    "benchmarks": ["198.18.0.1", "198.19.255.255", "2001:2::1"],
    "documentation": ["192.0.2.1", "198.51.100.1", "203.0.113.1", "2001:db8::1", "3fff::1"],
    "multicast": ["224.0.0.1", "239.255.255.255", "ff02::1", "ff0e::1"],
    "class E and broadcast": ["240.0.0.1", "255.255.255.254", "255.255.255.255"],
    "mapped": ["::ffff:127.0.0.1", "::ffff:10.0.0.1", "::ffff:169.254.169.254", "::ffff:8.8.8.8", "::ffff:0:127.0.0.1"],
    "IPv4-compatible": ["::127.0.0.1", "::10.0.0.1", "::8.8.8.8"],
    "NAT64": ["64:ff9b::7f00:1", "64:ff9b::a9fe:a9fe", "64:ff9b::808:808", "64:ff9b:1::a00:1", "64:ff9b:1:ffff::1"],
    "6to4": ["2002:7f00:1::1", "2002:a00:1::", "2002:808:808::1"],
    "Teredo": ["2001:0:4136:e378:8000:63bf:3fff:fdd2", "2001::1"],
    "discard and reserved": ["100::1", "4000::1", "5f00::1", "8000::1", "e000::1", "::2", "1::1"],
}
NEVER_CASES = [
    pytest.param(address, id=f"{kind} {address}") for kind, addresses in NEVER.items() for address in addresses
]


@each("address", PUBLIC)
def test_ordinary_public_addresses_are_public_under_both_rules(address: str) -> None:
    assert public_address(ip_address(address))
    assert public_or_private_address(ip_address(address))


@each("address", PRIVATE)
def test_private_and_loopback_addresses_need_the_private_rule(address: str) -> None:
    assert not public_address(ip_address(address))
    assert public_or_private_address(ip_address(address))


@pytest.mark.parametrize("address", NEVER_CASES)
def test_special_addresses_are_always_refused(address: str) -> None:
    assert not public_address(ip_address(address))
    assert not public_or_private_address(ip_address(address))


@each(
    ("url", "origin"),
    [
        ("http://h/x?y=1", Origin("http", "h", 80)),
        ("HTTPS://Model.Example/", Origin("https", "model.example", 443)),
        ("https://h:8443", Origin("https", "h", 8443)),
        ("http://h:443/", Origin("http", "h", 443)),
        ("http://[::1]:65535/", Origin("http", "::1", 65535)),
        ("http://bücher.example/", Origin("http", "xn--bcher-kva.example", 80)),
        ("http://[FE80::1]/", Origin("http", "fe80::1", 80)),
        ("http://h/a@b", Origin("http", "h", 80)),
    ],
)
def test_a_url_gives_its_origin_in_normal_form(url: str, origin: Origin) -> None:
    assert checked_url(url).origin == origin


@each(
    ("url", "normal"),
    [
        ("HTTP://H", "http://h/"),
        ("http://h:80/x", "http://h/x"),
        ("https://h:80/x", "https://h:80/x"),
        ("http://h:/x", "http://h/x"),
        ("http://[::1]:8080?a=b", "http://[::1]:8080/?a=b"),
        ("http://127.1/", "http://127.0.0.1/"),
        ("http://0x7f000001:81/", "http://127.0.0.1:81/"),
        ("http://straße.example/ü?ß=ü", "http://xn--strae-oqa.example/%C3%BC?%C3%9F=%C3%BC"),
        ("http://h/a b%20%zz?<{`}>", "http://h/a%20b%20%zz?%3C%7B%60%7D%3E"),
        ("http://h/a/./b/../../../c/.?x=/../y", "http://h/c?x=/../y"),
        ("http://h//a/..//b", "http://h///b"),
        ("http://h/..", "http://h/"),
    ],
)
def test_a_url_has_one_normal_form(url: str, normal: str) -> None:
    assert str(checked_url(url)) == normal
    assert checked_url(normal) == checked_url(url)


@each("url", ["ftp://h/", "file:///etc/passwd", "gopher://h/", "h/x", "//h/x", "", "unix:///run/x", "javascript:1"])
def test_only_http_and_https_are_supported(url: str) -> None:
    with pytest.raises(InvalidURL, match="needs http or https"):
        checked_url(url)


@each(
    "url",
    [
        "http://user@h/",
        "http://user:secret@h/",
        "http://@h/",
        "http://h\\@evil/",
        "http://h/#f",
        "http://h/#",
        "http://h?x#secret",
        "http://h:0/",
        "http://h:65536/",
        "http://h:99999999999/",
        "http://h:-1/",
        "http://h:+80/",
        "http://h:\uff18\uff10/",
        "http://h:8 0/",
        "http://h:x/",
        "http:///x",
        "http:h",
        "https://",
        "http://exa mple/",
        "http://%31%32%37.0.0.1/",
        "http://[fe80::1%25eth0]/",
        "http://[::1/",
        "http://[127.0.0.1]/",
        "http://h/\r\nx: secret",
        "http://h/\ud800secret",
        "http://\ud800secret/",
        "http://h/" + "secret" * 20_000,
        "http://h\x00/secret",
        " http://h/secret",
    ],
)
def test_invalid_urls_are_refused_without_quoting_them(url: str) -> None:
    with pytest.raises(InvalidURL) as refused:
        checked_url(url)
    assert "secret" not in str(refused.value)
    assert "127" not in str(refused.value)
