package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"

	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"
)

// A certificate with its key, as files.
type pair struct{ cert, key string }

// Everything the parts and their clients prove themselves with.
type credentials struct {
	authority, server, admin, controllers pair
	// Signs the tokens of service accounts.
	tokens string
}

// Makes the credentials of a folder the first time, and finds them again later: a kubeconfig that
// somebody holds stays good across restarts.
func credentialsIn(folder string) (credentials, error) {
	at := func(name string) pair {
		return pair{filepath.Join(folder, name+".crt"), filepath.Join(folder, name+".key")}
	}
	found := credentials{
		authority: at("ca"), server: at("server"), admin: at("admin"), controllers: at("controllers"),
		tokens: filepath.Join(folder, "tokens.key"),
	}
	// The last file written says that all are there.
	if _, err := os.Stat(found.tokens); err == nil {
		return found, nil
	}
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return found, err
	}
	authority, authorityKey, err := issue(found.authority, template(pkix.Name{CommonName: "test control plane"}, func(c *x509.Certificate) {
		c.IsCA = true
		c.KeyUsage |= x509.KeyUsageCertSign
	}), nil, nil)
	if err != nil {
		return found, err
	}
	client := func(c *x509.Certificate) { c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth} }
	masters := []string{"system:masters"}
	for _, wanted := range []struct {
		at          pair
		certificate *x509.Certificate
	}{
		{found.server, template(pkix.Name{CommonName: "kube-apiserver"}, func(c *x509.Certificate) {
			c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
			c.DNSNames = []string{"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc"}
			c.IPAddresses = []net.IP{net.IPv4(127, 0, 0, 1)}
		})},
		{found.admin, template(pkix.Name{CommonName: "admin", Organization: masters}, client)},
		// Another name than the admin's, so that the audit log tells them apart.
		{found.controllers, template(pkix.Name{CommonName: "system:kube-controller-manager", Organization: masters}, client)},
	} {
		if _, _, err := issue(wanted.at, wanted.certificate, authority, authorityKey); err != nil {
			return found, err
		}
	}
	_, err = newKey(found.tokens)
	return found, err
}

func template(subject pkix.Name, change func(*x509.Certificate)) *x509.Certificate {
	certificate := &x509.Certificate{
		Subject:               subject,
		NotBefore:             time.Now().Add(-time.Hour),
		NotAfter:              time.Now().AddDate(10, 0, 0),
		KeyUsage:              x509.KeyUsageDigitalSignature,
		BasicConstraintsValid: true,
	}
	change(certificate)
	return certificate
}

// Writes a new key and its certificate, signed by the parent or, without one, by itself.
func issue(at pair, certificate, parent *x509.Certificate, parentKey *ecdsa.PrivateKey) (*x509.Certificate, *ecdsa.PrivateKey, error) {
	key, err := newKey(at.key)
	if err != nil {
		return nil, nil, err
	}
	if parent == nil {
		parent, parentKey = certificate, key
	}
	if certificate.SerialNumber, err = rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120)); err != nil {
		return nil, nil, err
	}
	bytes, err := x509.CreateCertificate(rand.Reader, certificate, parent, key.Public(), parentKey)
	if err != nil {
		return nil, nil, err
	}
	if err := writePEM(at.cert, "CERTIFICATE", bytes); err != nil {
		return nil, nil, err
	}
	signed, err := x509.ParseCertificate(bytes)
	return signed, key, err
}

func newKey(path string) (*ecdsa.PrivateKey, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	bytes, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return nil, err
	}
	return key, writePEM(path, "EC PRIVATE KEY", bytes)
}

func writePEM(path, kind string, bytes []byte) error {
	return os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: bytes}), 0o600)
}

// Writes a kubeconfig that carries everything inline, so that it can be copied elsewhere.
func writeKubeconfig(path, server string, all credentials, client pair) error {
	var contents [3][]byte
	for index, file := range []string{all.authority.cert, client.cert, client.key} {
		bytes, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		contents[index] = bytes
	}
	const name = "test"
	config := api.NewConfig()
	config.Clusters[name] = &api.Cluster{Server: server, CertificateAuthorityData: contents[0]}
	config.AuthInfos[name] = &api.AuthInfo{ClientCertificateData: contents[1], ClientKeyData: contents[2]}
	config.Contexts[name] = &api.Context{Cluster: name, AuthInfo: name}
	config.CurrentContext = name
	return clientcmd.WriteToFile(*config, path)
}
